"""Settings: a database's block is laid over the instance's, and no message shows a key."""

import json

import pytest

from datasette_mempalace.cli.common import settings_for
from datasette_mempalace.config import read_settings
from datasette_mempalace.errors import ConfigError
from datasette_mempalace.registry import settings_of

PLUGIN = "datasette-mempalace"


def configured(instance, palace):
    config = {"plugins": {PLUGIN: instance}, "databases": {"palace": {"plugins": {PLUGIN: palace}}}}
    return {key: value for key, value in config.items() if value}


def test_a_databases_block_is_laid_over_the_instances(make_datasette, palace_path, palace_named, tmp_path):
    instance = {"n_results": 20, "title": "All", "tables": {"a": "id"}}
    own = {"title": "Mine", "tables": {"b": "id"}}
    config = configured(instance, own)
    datasette = make_datasette(palace_path, palace_named("other.db"), config=config)
    mine, others = settings_of(datasette, "palace"), settings_of(datasette, "other")
    assert (mine.title, mine.n_results, mine.tables) == ("Mine", 20, {"b": "id"})
    assert (others.title, others.n_results, others.tables) == ("All", 20, {"a": "id"})

    file = tmp_path / "metadata.json"
    file.write_text(json.dumps(config))
    on_the_command_line = settings_for(palace_path, file)
    assert (on_the_command_line.title, on_the_command_line.n_results) == ("Mine", 20)


async def test_the_merged_settings_hold_on_every_page(make_datasette, palace_path):
    datasette = make_datasette(palace_path, config=configured({"n_results": 3}, {"title": "Mine"}))
    answer = (await datasette.client.get("/palace/-/mempalace.json?q=token")).json()
    assert len(answer["results"]) == 3
    assert "Mine" in (await datasette.client.get("/palace/-/mempalace?q=token")).text


def test_a_block_of_the_database_for_other_plugins_changes_nothing(make_datasette, palace_path):
    config = {
        "plugins": {PLUGIN: {"n_results": 20}},
        "databases": {"palace": {"plugins": {"another-plugin": {"x": 1}}}},
    }
    assert settings_of(make_datasette(palace_path, config=config), "palace").n_results == 20


@pytest.mark.parametrize("blocks", [("text", {}), ({}, "text"), ([], None), (None, 3)])
def test_a_block_that_is_no_mapping_is_refused(blocks):
    with pytest.raises(ConfigError, match="must be a mapping"):
        read_settings(*blocks)


@pytest.mark.parametrize(
    "block",
    [
        {"embedder": {"name": "openai", "config": {"api_key": "sk-planted"}, "extra": 1}},
        {"embedder": {"api_key": "sk-planted"}},
        {"title": {"api_key": "sk-planted"}},
        {"tables": {"api_key": ["sk-planted"]}},
    ],
)
def test_a_message_about_a_setting_shows_no_key(block):
    with pytest.raises(ConfigError) as problem:
        read_settings(block)
    assert "sk-planted" not in problem.value.message
    assert "not allowed" in problem.value.message
