"""What annotations, markers and functions of an application declare; what of it is refused at the start."""
