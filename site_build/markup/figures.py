"""Pictures with captions: a paragraph that holds nothing but a titled image becomes a figure."""

from xml.etree.ElementTree import Element, SubElement


def frame_images(root: Element) -> None:
    """Turn each such paragraph into a figure, and its image's title into the caption.

    A figure that the author wrote by hand stays as it is, its paragraphs too.
    """
    framed = {id(inside) for figure in root.iter("figure") for inside in figure.iter("p")}
    for paragraph in root.iter("p"):
        image = None if id(paragraph) in framed else _find_only_image(paragraph)
        if image is not None and (caption := image.get("title", "").strip()):
            del image.attrib["title"]
            paragraph.tag = "figure"
            SubElement(paragraph, "figcaption").text = caption


def _find_only_image(parent: Element) -> Element | None:
    """Return the image that is all a paragraph shows, by itself or as a link."""
    if len(parent) != 1 or (parent.text or "").strip() or (parent[0].tail or "").strip():
        return None
    child = parent[0]
    return _find_only_image(child) if child.tag == "a" else child if child.tag == "img" else None
