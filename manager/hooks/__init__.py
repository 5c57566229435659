"""Where the user's code hears of trials: callbacks and stoppers."""
