"""Mail: messages, their queue, their delivery, and what became of them."""
