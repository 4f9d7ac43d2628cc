"""What is protected: the policy, the data source behind it, and the tables casemate ships."""
