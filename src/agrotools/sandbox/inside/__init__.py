"""What runs inside of a sandbox: plain files of the standard library, started as a script, never imported by us."""
