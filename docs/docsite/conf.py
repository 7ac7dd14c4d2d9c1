"""How Sphinx renders the site; tools/docs_site lays out the pages and calls it."""

import re

from docutils import nodes

project = "inferops.sglang"
author = "Inferops"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
myst_heading_anchors = 4  # as the forges name them
html_theme = "furo"
html_title = "inferops.sglang"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}  # the forge's edit button would miss pages that are made

# What the reference calls by labels of Ansible's own documentation, which is not asked for while this is rendered.
ANSIBLE = "https://docs.ansible.com/ansible/latest"
LABELS = {
    "common_return_values": f"{ANSIBLE}/reference_appendices/common_return_values.html",
    "ansible_configuration_settings": f"{ANSIBLE}/reference_appendices/config.html",
    "action_plugins": f"{ANSIBLE}/plugins/action.html",
}


def of_ansible(app, env, node, content):
    """Lead a label of Ansible's to its page."""
    address = LABELS.get(node.get("reftarget"))
    return address and nodes.reference("", "", content, refuri=address, internal=False)


def of_reference(app, docname, source):
    """Give the reference a title for people; the theme has a table of contents of its own beside the page."""
    if docname.startswith("reference/"):
        source[0] = re.sub(r"^\.\. contents::\n(   :.*\n)*", "", source[0], flags=re.M)
        source[0] = source[0].replace("Inferops.Sglang\n====", "Modules, filters, lookups, roles\n" + "=" * 21, 1)


def setup(app):
    app.connect("source-read", of_reference)
    app.connect("missing-reference", of_ansible)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
