"""Makes a flame graph in SVG, and tables, from samples of `perf record -g`.

A stack is a tuple of frames, the root first. The first frame is the group of threads. A frame is a pair: function, file
of its code.
"""

import collections
import html
import pathlib
import re

from process_cost import group_of

KERNEL = "kernel"
WIDTH, ROW, MARGIN = 1600, 17, 30
NARROWEST = 2.0  # pixels; the graph omits narrower frames
CHARACTER = 6.6  # pixels
COLORS = {"conversed": "#8fc97f", KERNEL: "#f0a868", "threads": "#d8d8d8"}
OTHER_COLOR = "#8fb8de"


def read_stacks(script):
    """Returns the count of each stack in the output of `perf script -F comm,tid,ip,sym,dso`. A sample is a line of the
    thread, its frames with the leaf first, and an empty line."""
    stacks = collections.Counter()
    for sample in script.split("\n\n"):
        head, *lines = sample.strip("\n").splitlines() or [""]
        thread = re.match(r" *(.+?) +\d+ *$", head)
        if thread:
            frames = [frame for frame in map(read_frame, reversed(lines)) if frame]
            stacks[((group_of(thread[1]), "threads"), *frames)] += 1
    return stacks


def read_frame(line):
    """Reads a line ADDRESS FUNCTION (FILE). The function may contain spaces and brackets."""
    found = re.match(r"\s*[0-9a-f]+ (.*) \((.*?)\)$", line)
    if not found:
        return None
    function, file = found.groups()
    if file.startswith("[unknown"):  # not code: a library without frame pointers keeps other data there
        return None
    name = KERNEL if file.startswith("[kernel") else pathlib.PurePath(file.split(" ")[0]).name.strip("[]")
    return shortened(function), name


def shortened(function):
    """Removes the offset and the arguments of templates."""
    short = re.sub(r"\+0x[0-9a-f]+$", "", function).replace("std::__cxx11::basic_string", "std::string")
    while (stripped := re.sub(r"(?<!operator)<[^<>]*>", "", short)) != short:
        short = stripped
    return short


def svg(stacks, title):
    """Draws the flame graph. A frame stands on its caller, and its width is its number of samples."""
    boxes, total = layout(stacks)
    height = (max(depth for _, depth, _, _ in boxes) + 1) * ROW + 2 * MARGIN
    scale = (WIDTH - 2 * MARGIN) / total
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" '
             'font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{MARGIN}" y="20">{html.escape(title)}; {total:,} samples</text>']
    for (function, file), depth, begin, count in boxes:
        width = count * scale
        if width < NARROWEST:
            continue
        x, y = MARGIN + begin * scale, height - MARGIN - (depth + 1) * ROW
        fits = int(width / CHARACTER) - 1
        label = function.removeprefix("conversed::")[:fits] if fits > 3 else ""
        lines.append(
            f'<g><title>{html.escape(f"{function} ({file}): {count:,} samples, {count / total:.1%}")}</title>'
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" fill="{COLORS.get(file, OTHER_COLOR)}"/>'
            f'<text x="{x + 2:.1f}" y="{y + 12}">{html.escape(label)}</text></g>')
    return "\n".join([*lines, "</svg>", ""])


def layout(stacks):
    """Returns the boxes (frame, depth, first sample, samples), and the number of all samples."""
    boxes = []
    open_boxes = []  # (frame, first sample), by depth
    at = 0

    def close(depth):
        while len(open_boxes) > depth:
            frame, begin = open_boxes.pop()
            boxes.append((frame, len(open_boxes), begin, at - begin))

    for stack in sorted(stacks):
        same = 0
        while same < min(len(stack), len(open_boxes)) and open_boxes[same][0] == stack[same]:
            same += 1
        close(same)
        open_boxes.extend((frame, at) for frame in stack[same:])
        at += stacks[stack]
    close(0)
    return boxes, at


def shares(stacks, key):
    """Returns (key, share of all samples), largest first. Omits stacks whose key is None."""
    counts = collections.Counter()
    for stack, count in stacks.items():
        if (name := key(stack)) is not None:
            counts[name] += count
    total = sum(stacks.values())
    return [(name, count / total) for name, count in counts.most_common()]


def by_group(stack):
    return stack[0][0]


def by_file(stack):
    return stack[-1][1]


def by_function(stack):
    return stack[-1] if len(stack) > 1 else None
