"""Every door that takes calls: what reaches a tool is what the gate decided on."""
