"""What is kept between builds, and work spread over processes; it knows nothing of sites."""
