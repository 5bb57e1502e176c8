"""A headless Chromium, driven over the DevTools protocol through a pipe. CHROMIUM names the program."""

import json
import os
import shutil
import subprocess
import tempfile

# The number of a key on Windows, without which some do nothing.
KEYS = {"Tab": 9, "Enter": 13, "Space": 32, "End": 35, "Home": 36}
KEYS |= {"ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
OPTIONS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run
    --disable-background-networking --disable-component-update --hide-scrollbars
    --remote-debugging-pipe"""
# Emulation.setDeviceMetricsOverride
PHONE = dict(width=390, height=844, deviceScaleFactor=1, mobile=False)


def find():
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), None)


class BrowserError(Exception):
    """What the page or the browser said was wrong."""


class Browser:
    """with Browser() as browser: browser.open(path); browser.evaluate("document.title")"""

    def __init__(self, width=1280, height=1000):
        self.size = f"{width},{height}"
        self.errors = []  # of the console, and exceptions
        self.asked = []  # addresses that pages asked for
        self.number = 0
        self.buffer = b""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def pipes():  # Chromium reads from 3 and writes to 4
            os.dup2(to_browser, 103)
            os.dup2(from_browser, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        command = [
            find(),
            *OPTIONS.split(),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={self.profile.name}",
            f"--window-size={self.size}",
            "about:blank",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, **quiet)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.read)
        os.close(self.write)
        self.profile.cleanup()

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 16)
            if not part:
                raise BrowserError("Chromium has ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        method, of = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = of["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and of["type"] in ("error", "warning", "assert"):
            self.errors.append(
                " ".join(str(a.get("value", a.get("description"))) for a in of["args"])
            )
        elif method == "Log.entryAdded" and of["entry"]["level"] in ("error", "warning"):
            self.errors.append(of["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not of["request"]["url"].startswith("data:"):
            self.asked.append(of["request"]["url"])
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, hash=""):
        """Loads a file, and waits until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.resolve().as_uri() + hash)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits for a promise. Raises BrowserError."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def page_ms(self):
        """CPU time of the page's own thread since it was opened, in ms."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(
            1000 * metric["value"] for metric in metrics if metric["name"] == "TaskDuration"
        )

    def press(self, *keys):
        """Letters, or keys by their names."""
        for name in keys:
            key = " " if name == "Space" else name
            text = "\r" if name == "Enter" else key if len(key) == 1 else ""
            of = {"key": key, "code": name, "windowsVirtualKeyCode": KEYS.get(name, 0)}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **of)
            self.call("Input.dispatchKeyEvent", type="keyUp", **of)
