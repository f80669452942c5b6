package config

import "weir.dev/weir/pkg/fault"

// Validator is implemented by a configuration that has rules between its fields.
type Validator interface {
	// Validate returns every violated rule; Path of each is the setting's.
	Validate() []fault.Problem
}

// Input is where settings come from: a file and the environment.
type Input struct {
	Service string   // whose settings these are
	Others  []string // services whose variables may be set too
	File    string   // name of the file, for errors
	Data    []byte   // its text; nil: no file
	Environ []string // as os.Environ gives it
}

// Load fills the targets, pointers to structs which hold the defaults and share one mapping, from the file and then from
// the environment. The error is a [*fault.Error] with every problem.
func Load(in Input, targets ...any) error {
	d := Decoder{}
	if in.Data != nil {
		root, problems := Parse(in.Data)
		d.Problems = problems
		if root != nil {
			d.Struct(root, ShapeOf(targets...), targets...)
		}
		SortProblems(d.Problems)
	}
	where, code := in.File, fault.ConfInvalid
	env, unknown := Overlay(in, targets...)
	if len(d.Problems) == 0 && len(env) > 0 {
		where = "environment"
		if unknown == len(env) {
			code = fault.ConfUnknownEnv
		}
	}
	problems := append(d.Problems, env...)
	for _, t := range targets {
		if v, ok := t.(Validator); ok && len(d.Problems)+len(env) == 0 {
			problems = append(problems, v.Validate()...)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	err := fault.New(code, where, "", "service", in.Service)
	err.Problems = problems
	return err
}
