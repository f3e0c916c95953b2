"""Pages in the system's Chromium."""

import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

LEGIBLE = """() => {
  const light = colour => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(part => part / 255);
    const [r, g, b] = parts.map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [...document.querySelectorAll("body *")]
    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(one => {
      const pair = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
      return (pair[0] + 0.05) / (pair[1] + 0.05);
    });
  return Math.min(...found);
}"""


class Watched:
    """A page, and what it did: dialogs, messages of its console, and errors."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(60_000)
        self.page = self.context.new_page()
        self.happened = []
        self.page.on("dialog", lambda dialog: (self.happened.append("dialog"), dialog.dismiss()))
        self.page.on("console", lambda message: self.happened.append(message.text))
        self.page.on("pageerror", lambda error: self.happened.append(str(error)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


class Opened(Watched):
    """A page of a file, with its requests too, which reach no network."""

    def __init__(self, browser, path, **options):
        super().__init__(browser, **options)
        self.page.on("request", lambda request: self.happened.append(request.url))
        self.asked = []
        self.context.route("**/*", self.ask)
        self.page.goto(path.as_uri())

    def ask(self, route):
        self.asked.append(route.request.url)
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            route.abort()
