"""Raw tables: from columns of any kind to features that are numbers."""
