"""Operations as declarations, and the documents that are made from them."""
