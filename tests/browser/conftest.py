"""What the browser tests share: Chromium, a palace served by a real Datasette, and pages that may ask no other host.

    make test-browser                      on the stable Datasette
    make test-browser ARGS="--shots DIR"   keeps a picture of every page in DIR (a failure always leaves one)

Chromium is the system's own, or the one in CHROMIUM; none is downloaded. Where something is missing, no test runs, and one line
says what it is; with BROWSER_TESTS=required that is a failure.
"""

import contextlib
import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import serving
import small_town

MOST_MILLISECONDS = 60_000  # to wait for anything: a busy machine is no failure

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    sync_playwright = None
else:
    expect.set_options(timeout=MOST_MILLISECONDS)

AXE = Path(__file__).resolve().parent / "node_modules" / "axe-core" / "axe.min.js"
BROWSERS = (
    [os.environ["CHROMIUM"]]
    if os.environ.get("CHROMIUM")
    else ["chromium", "chromium-browser", "google-chrome"]
)
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TALLEST_PICTURE = 2400
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def pytest_addoption(parser):
    """`--shots`: where pictures go."""
    parser.addoption("--shots", type=Path, help="keep a picture of every page in this folder")


def pytest_sessionstart(session):
    """End here, with one line, where the tests cannot run."""
    if sync_playwright is None:
        what = "the Python package playwright is not installed (make test-browser installs it)"
    elif CHROMIUM is None:
        what = f"there is no Chromium (looked for {', '.join(BROWSERS)}; CHROMIUM names another)"
    elif not AXE.exists():
        what = "axe-core is not installed (make test-browser installs it where npm is)"
    else:
        return
    pytest.exit(
        f"No browser tests: {what}.", returncode=1 if os.environ.get("BROWSER_TESTS") == "required" else 0
    )


@pytest.fixture(scope="session")
def chromium():
    """The browser, headless, with a fresh profile."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core."""
    return AXE.read_text("utf-8")


@pytest.fixture(scope="session")
def town(tmp_path_factory):
    """A function that gives a fresh copy of the small town's palace: each server has its own, with its own mirror."""
    built = tmp_path_factory.mktemp("town") / "palace.db"
    small_town.build(built)

    def copy(name="palace.db"):
        return shutil.copy(built, tmp_path_factory.mktemp("served") / name)

    return copy


@pytest.fixture(scope="session")
def plain(chromium, town):
    """The base URL of a Datasette with the plugin and nothing else."""
    with serving.plain(town()) as base:
        yield base


@pytest.fixture(scope="session")
def data_app(chromium, town):
    """The base URL of the data app, started as `make demo` starts it."""
    with serving.data_app(town()) as base:
        yield base


@pytest.fixture(scope="session")
def two_palaces(chromium, town):
    """The base URL of a Datasette with two palaces."""
    with serving.plain(town(), town("other.db")) as base:
        yield base


@pytest.fixture(scope="session")
def address(request):
    """The URL of one of our pages (a test chooses them by `our_pages.every_page`)."""
    server, path = request.param
    base = request.getfixturevalue(server)
    return base + (path(base) if callable(path) else path)


# Each page is opened twice, and shared by all tests that look at it: pytest runs them one after the other, page by page.
@pytest.fixture(scope="session")
def wide(chromium, address):
    """The page in a wide window."""
    with fenced(chromium) as new_page:
        page = new_page()
        page.goto(address)
        yield page


@pytest.fixture(scope="session")
def phone(chromium, address):
    """The page on a phone, without JavaScript."""
    with fenced(chromium) as new_page:
        page = new_page(viewport=PHONE, has_touch=True, is_mobile=True, java_script_enabled=False)
        page.goto(address)
        yield page


@pytest.fixture
def open_browser(chromium):
    """A function that gives a new page of a fresh profile, for a test of its own; see `fenced`."""
    with fenced(chromium) as new_page:
        yield new_page


@contextlib.contextmanager
def fenced(chromium):
    """A function that gives a new page of a fresh profile, until the end.

    Its options are those of Playwright's `new_context`. A request to another host is refused and is an error in the end, and so
    is an error in a script of the page.
    """
    contexts, elsewhere, errors = [], [], []

    def fence(route):
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    def new_page(**options):
        context = chromium.new_context(**{"viewport": WIDE, "service_workers": "block", **options})
        context.set_default_timeout(MOST_MILLISECONDS)
        context.route("**/*", fence)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert elsewhere == []
    assert errors == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep a picture of what a failed test looked at, and say where."""
    report = yield
    if report.when == "call" and report.failed and "chromium" in item.funcargs:
        pages = [page for context in item.funcargs["chromium"].contexts for page in context.pages]
        kept = [f"{page.url}: {item.funcargs['pictures'](page, f'failed {item.name}')}" for page in pages]
        report.sections.append(("Pictures", "\n".join(kept)))
    return report


@pytest.fixture(scope="session", autouse=True)
def pictures(request, tmp_path_factory):
    """A function that keeps a picture of a page and gives its path."""
    folder = request.config.getoption("--shots") or tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)

    def keep(page, name):
        path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}.png"
        size = page.viewport_size
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({**size, "height": min(max(height, 400), TALLEST_PICTURE)})
        page.screenshot(path=path)
        page.set_viewport_size(size)
        return path

    return keep
