"""page.py - a page of ktrdump's in headless Chromium, by Selenium: keys, the pointer, what the page's own state is.
"""
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.interaction import POINTER_MOUSE
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.keys import Keys

WORDS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=1400,900"]
SILENT_S = 60
KEYS = {"ArrowDown": Keys.ARROW_DOWN, "Enter": Keys.ENTER, "Escape": Keys.ESCAPE}


class Page:
    """A page that is shown: `with Page(url) as page`."""

    def __init__(self, url, dark=False):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for word in WORDS:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)
        self.browser = self.driver.capabilities["goog:processID"]
        self.driver.set_script_timeout(SILENT_S)
        self.driver.set_page_load_timeout(SILENT_S)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.go(url)

    def go(self, url):
        """Opens a page, and waits until it is there."""
        self.driver.get("about:blank")
        self.driver.get(url)
        self.ask("new Promise((good) => { const look = () => typeof page !== 'undefined' && page ? good(1) : setTimeout(look, 20); look(); })")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def said(self):
        """What Chromium says of the page since it was asked before: exceptions, and messages of the script."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def ask(self, expression):
        """The value of an expression of the page's script; of a promise, what it keeps."""
        return self.driver.execute_script(f"return ({expression})")

    def key(self, key, shift=False):
        keys = ActionChains(self.driver, duration=0)
        if shift:
            keys.key_down(Keys.SHIFT)
        keys.send_keys(KEYS.get(key, key))
        if shift:
            keys.key_up(Keys.SHIFT)
        keys.perform()
        self.frame()

    def type(self, text):
        ActionChains(self.driver, duration=0).send_keys(text).perform()

    def pointer(self, *steps):
        """steps: (x, y) of the canvas to move to, or `down` or `up`: the left button."""
        top = self.ask("document.getElementById('timeline').getBoundingClientRect().top")
        actions = ActionBuilder(self.driver, mouse=PointerInput(POINTER_MOUSE, "mouse"), duration=0)
        for step in steps:
            if step == "down":
                actions.pointer_action.pointer_down()
            elif step == "up":
                actions.pointer_action.pointer_up()
            else:
                actions.pointer_action.move_to_location(round(step[0]), round(step[1] + top))
        actions.perform()

    def drag(self, x, to, y):
        self.pointer((x, y), "down", ((x + to) // 2, y), (to, y), "up")
        self.frame()

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.ask("new Promise((good) => requestAnimationFrame(() => requestAnimationFrame(good)))")

    def picture(self, path):
        self.driver.save_screenshot(str(path))
