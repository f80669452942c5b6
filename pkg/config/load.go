package config

import "weir.dev/weir/pkg/fault"

// Validator is implemented by a configuration that has rules between its fields.
type Validator interface {
	// Validate returns every violated rule; Path of each is the setting's.
	Validate() []fault.Problem
}

// Load fills target, a pointer to a struct with its defaults set, from a file's text (nil: no file) and from the
// variables of the service. The error is a [*fault.Error] with every problem.
func Load(target any, service string, others []string, file string, data []byte, env []string) error {
	d := Decoder{}
	if data != nil {
		root, problems := Parse(data)
		d.Problems = problems
		if root != nil {
			d.Decode(root, target)
		}
		SortProblems(d.Problems)
	}
	envProblems := Overlay(target, service, others, env)
	problems := append(d.Problems, envProblems...)
	if v, ok := target.(Validator); ok && len(problems) == 0 {
		problems = v.Validate()
	}
	if len(problems) == 0 {
		return nil
	}
	code, where := fault.ConfInvalid, file
	if len(d.Problems) == 0 && len(envProblems) > 0 {
		code, where = fault.ConfUnknownEnv, "environment"
		for _, p := range envProblems {
			if p.What != "the variable names no setting" {
				code = fault.ConfInvalid
			}
		}
	}
	err := fault.New(code, where, "", "service", service)
	err.Problems = problems
	return err
}
