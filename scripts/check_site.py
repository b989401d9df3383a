#!/usr/bin/env python3
"""check_site.py SITE - every link within the site leads to a file and a heading that are there, and nothing
is loaded from elsewhere: no script, style, font or picture."""
import html.parser
import pathlib
import re
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()
loads = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "video": "src", "audio": "src"}
elsewhere = re.compile(r"^(https?:)?//", re.I)
bad = []


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.style = set(), [], False
        self.path = path
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attribute = dict(attributes)
        self.style = tag == "style"
        self.ids.update(attribute[k] for k in ("id", "name") if attribute.get(k))
        load = attribute.get(loads.get(tag, ""))
        if load and elsewhere.match(load):
            bad.append(f"{self.path}: loads {load}")
        if tag == "a" and attribute.get("href") and not re.match(r"^([a-z]+:|//)", attribute["href"], re.I):
            self.links.append(attribute["href"])

    def handle_data(self, data):
        if self.style:
            check_style(self.path, data)


def check_style(path, text):
    for address in re.findall(r"(?:@import\s*|url\()\s*[\"']?([^\"');]+)", text):
        if elsewhere.match(address):
            bad.append(f"{path}: loads {address}")


pages = {path: Page(path) for path in site.rglob("*.html")}
for path in site.rglob("*.css"):
    check_style(path, path.read_text(encoding="utf-8"))
for path, page in pages.items():
    for link in page.links:
        to, anchor = urllib.parse.urldefrag(link)
        target = (path.parent / urllib.parse.unquote(to.split("?")[0])).resolve() if to else path
        target = target / "index.html" if target.is_dir() else target
        if path.name == "404.html":
            continue  # its links are absolute
        if not target.exists():
            bad.append(f"{path}: there is no {link}")
        elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].ids:
            bad.append(f"{path}: {target.name} has no heading #{anchor}")
for line in sorted(set(bad)):
    print(line.replace(str(site) + "/", ""))
print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(set(bad))} bad")
sys.exit(bool(bad))
