"""The site that is made of these pages: `sphinx-build -W -b dirhtml docs .dyno/site`."""

project = "webdyno"
author = "webdyno's developers"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "webdyno"
myst_heading_anchors = 3
