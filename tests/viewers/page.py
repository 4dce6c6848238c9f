"""page.py - a page in headless Chromium, by the DevTools protocol over pipes: keys, the pointer, what the page's own state is.
"""
import base64
import json
import os
import select
import subprocess
import tempfile

WORDS = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
         "--window-size=1400,900", "--remote-debugging-pipe", "--no-first-run"]
SILENT_S = 60


class Page:
    """A page that is shown: `with Page(url) as page`."""

    def __init__(self, url, dark=False):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium's children may write still
        theirs, self.to = os.pipe()
        self.back, ours = os.pipe()

        def wire():  # Chromium reads descriptor 3, and writes 4
            a, b = os.dup(theirs), os.dup(ours)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.browser = subprocess.Popen([*WORDS, f"--user-data-dir={self.home.name}", "about:blank"], close_fds=False, preexec_fn=wire,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(ours)
        self.number, self.read, self.session, self.said = 0, b"", None, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.go(url)

    def go(self, url):
        """Opens a page, and waits until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.ask("new Promise((good, bad) => { const look = () => typeof page !== 'undefined' && page ? good(1) : setTimeout(look, 20); look(); })")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.kill()
        self.browser.wait()
        os.close(self.to)
        os.close(self.back)
        self.home.cleanup()

    def message(self):
        while b"\0" not in self.read:
            if not select.select([self.back], [], [], SILENT_S)[0]:
                raise AssertionError(f"Chromium says nothing for {SILENT_S} s; before: {self.said}")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise AssertionError("Chromium has gone")
            self.read += more
        one, self.read = self.read.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        said = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.to, json.dumps(said).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(answer["params"])
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def ask(self, expression):
        """The value of an expression of the page's script; of a promise, what it keeps."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, key, shift=False):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 * shift, **(text if kind == "keyDown" else {}))
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, kind, x, y, **options):
        """kind: Pressed, Moved, Released, Wheel; x and y are those of the canvas."""
        top = self.ask("document.getElementById('timeline').getBoundingClientRect().top")
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y + top, **options)

    def drag(self, x, to, y, **options):
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y, button="left", buttons=1, clickCount=1, **options)
        for at in ((x + to) // 2, to):
            self.mouse("Moved", at, y, button="left", buttons=1, **options)
        self.mouse("Released", to, y, button="left", clickCount=1, **options)
        self.frame()

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.ask("new Promise((good) => requestAnimationFrame(() => requestAnimationFrame(good)))")

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
