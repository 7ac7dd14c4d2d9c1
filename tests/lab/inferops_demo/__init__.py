"""The demo: sets the stage, plays the acts with the production playbooks, and judges each by what is on the host."""
