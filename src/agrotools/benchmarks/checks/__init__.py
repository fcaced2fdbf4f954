"""Checks of one sample each: functions from what is known of the sample to the faults in it."""
