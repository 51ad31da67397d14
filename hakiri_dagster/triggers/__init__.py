"""What starts pipelines from outside: the inbox of webhooks, and the queues that messages are taken off."""
