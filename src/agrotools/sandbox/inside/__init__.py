"""Code that runs inside a sandbox: standard library only, started as a script, never imported by agrotools."""
