"""What rides in every Python process of a watched job: standard library only, Python 3.8 or newer.

A copy of this package goes on the job's path as `stuck_ranks_beacon`, next to a `sitecustomize` that
starts it. It never imports torch: it looks at the modules that the job itself has loaded.
"""
