"""The session memory: notes that outlive every compaction, as data and as a document."""
