"""The geometry of the pages' pictures: numbers in, places out. Pure; the templates draw them as SVG."""
