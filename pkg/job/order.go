package job

// ordered reports whether a user's order to the sources has still to be given.
func (s *State) ordered() bool { return s.applied() || s.resnapshots() }

// order begins an attempt from h that is given all of the user's orders.
func (s *State) order(m Moment, h Head, r Reason) []Effect {
	if s.applied() {
		s.Intent.apply(&h)
		r.Code = "APPLY"
	}
	if s.resnapshots() {
		s.Intent.resnapshot(&h)
		r.Code = "RESNAPSHOT"
	}
	return s.attempt(m, h, r, 0)
}
