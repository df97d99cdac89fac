"""`headrace bench`: whole pipelines under a known load, beside the best that the load allows."""
