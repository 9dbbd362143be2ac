"""The page that answers the articles' question, written from kept results."""
