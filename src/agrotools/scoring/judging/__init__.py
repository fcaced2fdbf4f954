"""Questions to judges (models that grade answers) and scores from their replies. This package calls no model."""
