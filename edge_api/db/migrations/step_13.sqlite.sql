-- Version 1.1.0: nothing changes here; on PostgreSQL a lead is indexed in less time.

