# SPDX-License-Identifier: MIT
"""Settings, sites, events, profiles, and what a notebook shows."""
import logging
import os
import subprocess
import sys

import pytest

import tidepool


def use(pool, times):
    for _ in range(times):
        with pool.scope("steered") as s:
            s.empty(10, "f4")
            s.empty(10, "i8")


def steered():
    return next(site for site in tidepool.sites() if site.name == "steered")


@pytest.fixture(scope="module")
def pool():
    made = tidepool.Pool()
    use(made, 100)
    tidepool.settle(200_000)
    use(made, 2)
    return made


def test_a_site_learns_the_types_of_its_arrays(pool):
    site = steered()
    assert set(site.types) == {"f32", "i64"}
    assert site.tier in ("table", "compiled") and site.kind == "scope"


def test_a_site_may_be_pinned(pool):
    site = steered()
    site.pin("full")
    assert steered().pinned and steered().tier == "full"
    use(pool, 10)
    site.unpin()
    assert not steered().pinned
    with pytest.raises(ValueError, match="tier"):
        site.pin("no such")


def test_sites_are_places_of_the_program(pool):
    with pool.scope() as s:
        name = s.site
    assert name.startswith("test_sites_are_places_of_the_program (") and "test_steer.py:" in name
    with pool.scope("named") as s:
        pass
    seen = {site.name: site for site in tidepool.sites()}
    assert (seen[name].function, seen[name].file) == ("test_sites_are_places_of_the_program", __file__)
    assert name.endswith(f"(test_steer.py:{seen[name].line})") and (seen["named"].file, seen["named"].line) == ("", 0)
    seen[name].pin("full")
    assert next(site for site in tidepool.sites() if site.name == name).pinned
    seen[name].unpin()


def test_sites_of_one_name_are_steered_apart(pool):
    """Two files of one name, a function and line in common."""
    files = ["/a/model.py", "/b/model.py"]
    for file in files:
        made = {}
        exec(compile("def forward(pool):\n    with pool.scope() as s:\n        s.empty(3)\n", file, "exec"), made)
        made["forward"](pool)

    def seen():
        return [site for site in tidepool.sites() if site.name == "forward (model.py:2)"]

    assert [site.file for site in seen()] == files
    seen()[1].pin("full")
    assert [site.pinned for site in seen()] == [False, True]
    seen()[0].pin("full")
    seen()[1].unpin()
    assert [site.pinned for site in seen()] == [True, False]
    seen()[1].pin("full")
    seen()[1].reset()
    assert [site.pinned for site in seen()] == [True, False]
    seen()[0].reset()


def test_settings_are_read_and_set():
    settings = tidepool.settings
    assert len(settings) == len(list(settings)) > 20
    before = settings["trim_after"]
    settings["trim_after"] = before + 1
    assert settings["trim_after"] == before + 1 and dict(settings)["trim_after"] == before + 1
    del settings["trim_after"]
    described = settings.describe("trim_after")
    assert settings["trim_after"] == described.initial and described.meaning
    with pytest.raises(KeyError):
        settings["no such"]
    with pytest.raises(KeyError):
        settings["no such"] = 1
    with pytest.raises(ValueError):
        settings["trim_after"] = float("nan")
    settings["trim_after"] = described.initial + 1
    assert settings.pop("trim_after") == described.initial + 1 == settings["trim_after"] + 1
    settings["trim_after"] = described.initial + 1
    settings.clear()
    assert settings["trim_after"] == described.initial and len(settings) > 20
    with pytest.raises(TypeError, match="not removed"):
        settings.popitem()


def test_profiles_go_to_a_file_and_come_back(pool, tmp_path):
    path = tmp_path / "profile"
    tidepool.profile.save(path)
    assert "steered" in path.read_text()
    tidepool.profile.load(path)
    tidepool.profile.merge(os.fspath(path))
    with pytest.raises(OSError, match="no such"):
        tidepool.profile.load(tmp_path / "no such")
    (tmp_path / "bad").write_text("nonsense\n")
    with pytest.raises(OSError):
        tidepool.profile.merge(tmp_path / "bad")


def test_events_are_told_and_logged(pool, caplog):
    told = []
    tidepool.on_event(told.append)
    for _ in range(100):
        with pool.scope("told of") as s:
            s.empty(3, "u2")
    tidepool.settle(200_000)
    tidepool.on_event(None)
    ours = [event for event in told if event["name"] == "told of"]
    assert {"published"} <= {event["kind"] for event in ours}
    with caplog.at_level(logging.INFO, "tidepool"):
        tidepool.log_events()
        for _ in range(100):
            with pool.scope("logged") as s:
                s.empty(3, "u2")
        tidepool.settle(200_000)
        tidepool.on_event(None)
    assert any("logged" in record.getMessage() for record in caplog.records)


def test_events_of_names_that_are_cut_within_a_character_are_told(pool):
    told = []
    tidepool.on_event(told.append)
    for _ in range(100):
        with pool.scope("é" * 40) as s:
            s.empty(3, "u2")
    tidepool.settle(200_000)
    tidepool.on_event(None)
    assert [event for event in told if event["name"].startswith("é" * 31)]


def test_an_event_function_that_raises_is_ignored(pool, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)
    tidepool.on_event(lambda event: 1 / 0)
    for _ in range(100):
        with pool.scope("raising") as s:
            s.empty(3, "u2")
    tidepool.settle(200_000)
    tidepool.on_event(None)
    assert seen and seen[0].exc_type is ZeroDivisionError


def test_a_fork_does_not_wait_for_an_event_function():
    """Whoever calls it has no lock of the library."""
    program = """
import os, tidepool
told = []
tidepool.on_event(lambda event: told.append(sum(range(20000))))
pool = tidepool.Pool()
for i in range(20):
    for _ in range(200):
        with pool.scope(f"site {i}") as s:
            s.empty(3, "u2" if i % 2 else "f4")
    child = os.fork()
    if child == 0:
        with pool.scope("child") as s:
            s.empty(3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
tidepool.settle(200000)
print(len(told) > 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_notebooks_show_tables(pool):
    assert "steered" in tidepool.sites()._repr_html_()
    assert "trim_after" in tidepool.settings._repr_html_()
    assert "bytes_held" in pool._repr_html_()
    closed = tidepool.Pool("<b>")
    closed.close()
    assert "&lt;b&gt;" not in repr(closed) and "<b>" not in closed._repr_html_()
