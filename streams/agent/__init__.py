"""What an agent's code imports (by way of `headrace`): the decorator, the class, the emitters and the resources."""
