"""What `import webdyno` gives."""
