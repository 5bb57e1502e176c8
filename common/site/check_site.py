#!/usr/bin/env python3
"""Checks a site: every link leads to a file and a place that exist, and no page loads anything over the network.

    check_site.py DIRECTORY     a line per fault; exit 1 if there is one
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page is linked by (ids), links to (links), loads (loads), and paragraphs that look like raw Markdown."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.raw = set(), [], [], []
        self.code, self.text = 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "p":
            self.text = ""
        self.code += tag in ("pre", "code", "script", "style")
        address = values.get("href" if tag in ("a", "link") else "src")
        if not address:
            return
        loaded = tag != "a" and not (tag == "link" and values.get("rel") in ("canonical", "prev", "next"))
        (self.loads if loaded else self.links).append(address)

    def handle_endtag(self, tag):
        self.code -= tag in ("pre", "code", "script", "style")
        if tag == "p":
            self.raw += [line for line in self.text.splitlines() if line.startswith(("- ", "| ", "```", "# "))]

    def handle_data(self, data):
        if not self.code:
            self.text += data


def faults(site):
    """A line of text per fault of the HTML files below `site`."""
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in sorted(Path(site).rglob("*.html"))}
    found = []
    for file, page in pages.items():
        name = file.relative_to(Path(site).resolve())
        found += [f"{name}: Markdown that was not rendered: {line}" for line in page.raw]
        for address in page.loads + page.links:
            parts = urlsplit(address)
            if parts.scheme == "data" or (parts.scheme and address not in page.loads):
                continue
            if parts.scheme or parts.netloc:
                found.append(f"{name}: loads {address} over the network")
                continue
            if file.name == "404.html" and parts.path.startswith("/"):  # shown at any address
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                found.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and target in pages and address in page.links:
                if unquote(parts.fragment) not in pages[target].ids | {"__top"}:
                    found.append(f"{name}: {address}: no such place in {target.name}")
    return sorted(set(found))


if __name__ == "__main__":
    problems = faults(sys.argv[1])
    print("\n".join(problems) or "every link leads somewhere")
    sys.exit(1 if problems else 0)
