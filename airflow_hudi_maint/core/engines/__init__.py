"""Ways to run a Spark job."""
