"""What photographs say of themselves: when, where and with what they were taken, and what people wrote into them."""
