"""Checks what MkDocs does not: that no page of a site loads anything over the network, and that no Markdown was left as it is."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit


class Page(HTMLParser):
    """What a page loads (loads), and paragraphs that look like raw Markdown (raw)."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.raw, self.code, self.text = [], [], 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "p":
            self.text = ""
        self.code += tag in ("pre", "code", "script", "style")
        address = values.get("href" if tag == "link" else "src")
        if address and not (tag == "link" and values.get("rel") in ("canonical", "prev", "next")):
            self.loads.append(address)

    def handle_endtag(self, tag):
        self.code -= tag in ("pre", "code", "script", "style")
        if tag == "p":
            self.raw += [
                line
                for line in self.text.splitlines()
                if line.startswith(("- ", "| ", "```", "# "))
            ]

    def handle_data(self, data):
        if not self.code:
            self.text += data


def faults(site):
    """A line of text per fault of the HTML files below `site`."""
    found = set()
    for file in Path(site).rglob("*.html"):
        page, name = Page(file.read_text(encoding="utf-8")), file.relative_to(site)
        found |= {f"{name}: Markdown that was not rendered: {line}" for line in page.raw}
        for address in page.loads:
            parts = urlsplit(address)
            if parts.scheme != "data" and (parts.scheme or parts.netloc):
                found.add(f"{name}: loads {address} over the network")
    return sorted(found)
