"""Jobs on a folder cache: what each does, whoever runs it (see `featpipe.build.jobs`)."""
