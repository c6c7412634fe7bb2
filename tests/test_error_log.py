"""What Datasette logs of an error names the fault, and no cookie or text that was at hand."""

import pytest
from datasette import hookimpl
from datasette.plugins import pm

pytest.importorskip("rich")

SECRET = "cookie-that-nobody-should-log"


class Breaking:
    __name__ = "breaking"  # Datasette 0.65 asks for it

    @hookimpl
    def register_routes(self):
        def broken(request):
            raise RuntimeError("the lamp is broken")

        return [(r"^/-/broken$", broken)]


@pytest.fixture
def ask(make_datasette, palace_path):
    """A function that asks for an address with a secret cookie."""
    plugin = Breaking()
    pm.register(plugin)

    async def ask(address, **settings):
        datasette = make_datasette(palace_path, config={"plugins": {"datasette-mempalace": settings}})
        return await datasette.client.get(address, cookies={"planted": SECRET})

    yield ask
    pm.unregister(plugin)


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["/nosuch", "/palace/nosuch", "/palace/drawers?_size=x"])
async def test_a_wrong_address_logs_nothing_of_the_visitor(ask, capfd, address):
    assert (await ask(address)).status_code in (400, 404)
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.asyncio
async def test_a_fault_is_logged_without_local_variables(ask, capfd):
    assert (await ask("/-/broken")).status_code == 500
    logged = "".join(capfd.readouterr())
    assert "RuntimeError: the lamp is broken" in logged
    assert "test_error_log.py" in logged
    assert SECRET not in logged


@pytest.mark.asyncio
async def test_the_setting_brings_them_back(ask, capfd):
    assert (await ask("/-/broken", rich_tracebacks=True)).status_code == 500
    assert "locals" in "".join(capfd.readouterr())
    await ask("/nosuch")  # and the next Datasette of this process goes without again
    assert "locals" not in "".join(capfd.readouterr())
