#!/usr/bin/env python3
"""search.py FOLDER BROWSER WORD PAGE - the search of the site in FOLDER/site finds WORD in PAGE, or nothing where
PAGE is empty; its browser asks for nothing elsewhere. The page of results is shown in a frame, whose text is
copied when the server answers a request that it holds back until the search is done."""
import functools
import http.server
import pathlib
import subprocess
import sys
import threading
import time

folder, browser, word, page = sys.argv[1:]
probe = """<iframe id="f" src="search.html?q=%s"></iframe><img src="/later" onerror="
document.body.dataset.ready = 1;
document.body.append(document.getElementById('f').contentDocument.getElementById('mkdocs-search-results').cloneNode(true))">"""


class Server(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/later":
            time.sleep(8)
            return self.send_error(404)
        return super().do_GET()

    def log_message(self, *arguments):
        pass


site = pathlib.Path(folder) / "site"
(site / "probe.html").write_text(probe % word)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=site))
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/probe.html"
said = subprocess.run(
    [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom", address],
    capture_output=True, text=True, timeout=300, check=True).stdout
(site / "probe.html").unlink()
if "data-ready" not in said:
    sys.exit("the page of results did not come")
found = "<article" in said
if found != bool(page) or page not in said:
    sys.exit(f"{word}: expected {page or 'nothing'}, found: {said[said.find('<article'):][:500] if found else 'nothing'}")
print(f"{word}: {page or 'nothing, as it should be'}")
