"""Benchmark ``field``: questions on photographs of fields, leaves and fruit; the photographs are downloaded."""
