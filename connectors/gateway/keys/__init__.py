"""Who may call the gateway: keys in a file, hashed; what each is good for, and how often."""
