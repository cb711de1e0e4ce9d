"""What is offered: every operation declared once, and the documents made from the declarations."""
