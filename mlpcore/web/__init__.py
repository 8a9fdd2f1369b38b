"""Trained networks as a page of HTML that needs no server: draw a digit, and see the answer.

`html` puts the page together from the HTML, the style sheet and the JavaScript modules in `files`.
"""
