"""Long runs against the promises that a single run can keep by luck."""
