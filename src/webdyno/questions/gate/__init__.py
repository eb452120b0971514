"""Whether a revision is worse than another one by more than is tolerated.

`settings` are what is asked, `claims` what each limit's answer rests on, `decide` when a gate
passes; `show` has the facts of its answer, `words` the sentences, `comment` the pull request's.
"""
