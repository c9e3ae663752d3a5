"""The run as one stream: typed events in one order, and the subscribers that receive them."""
