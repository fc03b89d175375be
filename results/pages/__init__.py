"""What the pages say of the records: their tables, sections and figures."""
