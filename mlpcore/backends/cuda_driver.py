def unavailable_reason():
    return "x"
