"""What lies in a palace or a part of it, for whoever looks around before asking: counts, names, time, topics, sources.

Everything is counted in SQL from covering indexes, and kept until the palace changes; no function reads every text.
"""
