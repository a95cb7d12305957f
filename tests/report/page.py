#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page TIDEPOOL [RECORD PICTURE]: the report in Chromium. Hovers and presses keys, reads back what the page says,
and compares it with the record. With PICTURE, writes only what the README shows: the top of the page of RECORD.
Skipped (77) without Chromium, its driver or Selenium."""
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    print("no Selenium here (Debian: python3-selenium)")
    sys.exit(77)

here = pathlib.Path(__file__).parent
tidepool = sys.argv[1]
browser_path, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("wrong:", what)


def browser():
    options = Options()
    options.binary_location = browser_path
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1000", "--lang=en-GB",
                     "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver_path))


def scheme(page, name):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})
    until = time.monotonic() + 60
    while page.execute_script("return document.documentElement.dataset.theme") != name and time.monotonic() < until:
        time.sleep(.05)


def tip(page):
    return page.execute_script("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")


def hover(page, canvas, x, y):
    """Coordinates from the canvas's top left corner."""
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    size = canvas.size
    ActionChains(page).move_to_element_with_offset(canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)).perform()
    return tip(page)


def pixel(page, canvas, ms):
    return page.execute_script("return tidepoolReport.charts.get(arguments[0]).scales.x.getPixelForValue(arguments[1])", canvas.get_attribute("id"), ms)


def ms_of(facts, time_ns):
    return (time_ns - facts[0]["time_ns"]) / 1e6


def bands(page, facts, events):
    evaluate = page.find_element(By.ID, "canvas-3")
    mine = [e for e in events if e["site"] == 3]
    for event in mine:
        said = hover(page, evaluate, pixel(page, evaluate, ms_of(facts, event["time_ns"])), 12)
        check(event["reason"] in said and event["kind"] in said, f"mark {event['kind']}: {said!r} has not {event['reason']!r}")
    for number in (20, 45, 66, 90):
        site = next(s for s in facts[number]["sites"] if s["id"] == 3)
        said = hover(page, evaluate, pixel(page, evaluate, ms_of(facts, facts[number]["time_ns"]) + 60), 60)
        value = float(said.split(", ")[1].split(" ")[0]) if "ns a use" in said else None
        check(f": {site['tier']}, " in said and value is not None and abs(value - site["use_ns"]) <= .01 * site["use_ns"] + .1,
              f"look {number}: {said!r}, the record says {site['tier']} {site['use_ns']}")
    modelled = page.find_element(By.ID, "canvas-4")
    said = hover(page, modelled, pixel(page, modelled, ms_of(facts, facts[45]["time_ns"])), 60)
    check("full, a use not measured yet" in said, f"a model is no point of a band: {said!r}")
    check("≈ " in modelled.get_attribute("aria-label"), "what a screen reader says of a model")
    page.execute_script("arguments[0].focus()", evaluate)
    evaluate.send_keys(Keys.HOME)
    first = page.find_element(By.ID, "say").get_attribute("textContent")
    evaluate.send_keys(Keys.ARROW_RIGHT)
    second = page.find_element(By.ID, "say").get_attribute("textContent")
    check(first.startswith("0 s: ") and second and tip(page) == second, f"keys: {first!r}, {second!r}, {tip(page)!r}")
    evaluate.send_keys(Keys.ESCAPE)
    check(tip(page) == "", "Escape takes the tip away")
    check("full, then compiled, then full, then compiled" in evaluate.get_attribute("aria-label"), "what a screen reader says")


def memory(page, facts):
    canvas = page.find_element(By.ID, "pools-chart")
    said = hover(page, canvas, pixel(page, canvas, ms_of(facts, facts[50]["time_ns"]) + 50), 100)
    for pool in facts[50]["pools"]:
        line = next((l for l in said.split("\n") if l.startswith(f"{pool['name']} · {pool['thread_name']}: ")), "")
        shown = float(line.split(": ")[1].split(" ")[0]) * 2 ** 20 if line else 0
        check(abs(shown - pool["held_bytes"]) <= .01 * pool["held_bytes"], f"{line!r}, the record says {pool['held_bytes']}")


def tables(page, facts):
    rows = page.find_elements(By.CSS_SELECTOR, "#sites-table tbody tr")
    check(len(rows) == len(facts[-1]["sites"]), f"{len(rows)} rows")
    names = lambda: [r.text.split()[0] for r in page.find_elements(By.CSS_SELECTOR, "#sites-table tbody tr td:first-child")]
    button = page.find_element(By.XPATH, "//table[@id='sites-table']//button[text()='Uses']")
    page.execute_script("arguments[0].click()", button)
    wanted = [s["name"] for s in sorted(facts[-1]["sites"], key=lambda s: -s["uses"])]
    check(names() == wanted, f"sorted by uses: {names()}, not {wanted}")
    check(page.switch_to.active_element.text == "Uses", "the focus stays on the button")
    matrix = page.find_element(By.XPATH, "//table[@id='sites-table']//tr[.//a[text()='matrix']]")
    check("f32" in matrix.text, f"the type of matrix: {matrix.text}")
    advice = [e.text for e in page.find_elements(By.CSS_SELECTOR, "#advice .what")]
    check(advice and advice[0].startswith("solve always takes f64 and i32: TIDE_SCOPE_TYPES saves"), f"advice: {advice}")


def codes(page, said):
    parts = page.find_elements(By.CSS_SELECTOR, "#codes details")
    check(len(parts) == 1, f"{len(parts)} sites with code")
    text = parts[0].find_element(By.TAG_NAME, "pre")
    check(not text.is_displayed(), "code is folded in")
    parts[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    check(text.is_displayed() and text.text == said.strip(), f"code: {text.text!r}")


CONTRAST = """
const rgb = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return {c: m.slice(0, 3), a: m.length > 3 ? m[3] : 1}; };
const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) { const b = rgb(getComputedStyle(e).backgroundColor); if (b.a > .99) return b.c; } return [255, 255, 255]; };
const poor = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.offsetParent || e.closest('.skip, .away, script, noscript')) continue;
  const a = light(rgb(getComputedStyle(e).color).c), b = light(ground(e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) poor.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2) + ' ' + e.textContent.slice(0, 30));
}
return poor;"""
ACCESS = """
const wrong = [], ids = new Set();
for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) wrong.push('id twice: ' + e.id); ids.add(e.id); }
for (const e of document.querySelectorAll('button, a')) if (!e.textContent.trim()) wrong.push('without words: ' + e.outerHTML);
for (const e of document.querySelectorAll('canvas[role=img]')) if (!e.getAttribute('aria-label')) wrong.push('chart without words: ' + e.id);
for (const e of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) wrong.push('label: ' + e.outerHTML);
if (document.querySelectorAll('h1').length !== 1 || !document.documentElement.lang) wrong.push('one h1, a language');
if (document.documentElement.scrollWidth > innerWidth) wrong.push('wider than the window: ' + document.documentElement.scrollWidth);
return wrong;"""


def schemes(page):
    grounds = set()
    for name in ("light", "dark"):
        scheme(page, name)
        grounds.add(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
        poor = page.execute_script(CONTRAST)
        check(not poor, f"{name}: contrast below 4.5: {poor[:5]}")
    wrong = page.execute_script(ACCESS)
    check(not wrong, f"accessibility: {wrong}")
    check(len(grounds) == 2, f"light and dark are the same: {grounds}")


def hostile(page, work):
    record, file = work / "evil.rec", work / "evil.html"
    subprocess.run([sys.executable, here / "sample.py", record, "hostile"], check=True)
    check(subprocess.run([tidepool, "report", record, "-o", file]).returncode == 0, "a page of hostile names")
    page.get(file.as_uri())
    names = [e.text for e in page.find_elements(By.CSS_SELECTOR, ".band .name")]
    check('</script><img src=x onerror=document.title="owned">' in names and "<!--<script>" in names and "{{SCRIPT}}" in names, f"names as they are: {names}")
    check(not page.find_elements(By.TAG_NAME, "img"), "a name became an element")
    check(page.execute_script("return document.scripts.length") == 3, "a name became a script")
    part = page.find_element(By.CSS_SELECTOR, "#codes pre")
    check(part.get_attribute("textContent") == '</script><img src=x onerror=document.title="owned">', "code as it is")
    check(page.title != "owned" and page.title.endswith("Tidepool report"), f"title {page.title!r}")
    check(not page.get_log("browser"), "the console says something")
    narrow(page)


CUT = """return [document.documentElement, ...document.querySelectorAll('main *, section *')].filter(e =>
    e.clientWidth > 0 && e.tagName !== 'PRE' && !e.closest('details:not([open])') && getComputedStyle(e).display !== 'inline' &&
    (e.scrollWidth > e.clientWidth + 1 || (e.classList.contains('scroll') && e.scrollHeight > e.clientHeight + 1)))
    .map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60))"""


def narrow(page):
    """At 400 pixels nothing is cut off, and nothing scrolls but the page."""
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    until = time.monotonic() + 60  # charts take their new size when the browser has time
    while (cut := page.execute_script(CUT)) and time.monotonic() < until:
        time.sleep(0.1)
    check(not cut, f"cut off at 400 pixels: {cut}")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def one_look(page, facts, events, work):
    """A page of one document begins with the first event, and draws no memory of the time before."""
    record, file = work / "one.rec", work / "one.html"
    record.write_text("".join(json.dumps(line) + "\n" for line in
                              ({"format": "tidepool-record", "format_version": 1}, *events, facts[-1], {"end": {"exit_status": 0}})))
    check(subprocess.run([tidepool, "report", record, "-o", file]).returncode == 0, "a page of one look")
    page.get(file.as_uri())
    end = page.execute_script("return tidepoolReport.current().duration_ms")
    check(abs(end - (facts[-1]["time_ns"] - events[0]["time_ns"]) / 1e6) <= .1, f"one look: {end} ms")
    evaluate = page.find_element(By.ID, "canvas-3")
    check("compiled, " in hover(page, evaluate, pixel(page, evaluate, end * .9), 60), f"one look: {tip(page)!r}")
    check(not page.find_element(By.ID, "pools-figure").is_displayed() and page.find_element(By.ID, "one-look").is_displayed(), "no memory over time")


def picture(page, path):
    scheme(page, "light")
    page.set_window_size(1400, 1000)
    top, bottom = (page.execute_script("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return b[arguments[1]] + scrollY", *where)
                   for where in (("header", "top"), ("#bands", "bottom")))
    shot = page.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": {
        "x": 0, "y": max(0, top - 16), "width": 1400, "height": bottom - top + 32, "scale": 1}})
    pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))


def main():
    if not browser_path or not driver_path:
        print("no chromium with its driver here (Debian: chromium, chromium-driver)")
        return 77
    work = pathlib.Path(tempfile.mkdtemp(prefix="tide-page-"))
    record, file = work / "sample.rec", work / "page.html"
    if len(sys.argv) > 3:
        record = pathlib.Path(sys.argv[2])
    else:
        subprocess.run([sys.executable, here / "sample.py", record], check=True)
    made = subprocess.run([tidepool, "report", record, "-o", file], capture_output=True, text=True)
    if "libjs-chart.js" in made.stderr:
        print(made.stderr)
        return 77
    check(made.returncode == 0 and file.stat().st_size < 500000, f"the page: {made}")
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    facts = [l for l in lines if l.get("format") == "tidepool-facts"]
    page = browser()
    try:
        page.get(file.as_uri())
        if len(sys.argv) > 3:
            picture(page, sys.argv[3])
            return 0
        bands(page, facts, [l for l in lines if l.get("format") == "tidepool-event"])
        memory(page, facts)
        tables(page, facts)
        codes(page, next(l["spec"] for l in lines if l.get("format") == "tidepool-code"))
        schemes(page)
        narrow(page)
        check(not page.get_log("browser"), f"the console: {page.get_log('browser')}")
        one_look(page, facts, [l for l in lines if l.get("format") == "tidepool-event"], work)
        hostile(page, work)
    finally:
        page.quit()
    shutil.rmtree(work, ignore_errors=True)
    return 1 if failures else 0


sys.exit(main())
